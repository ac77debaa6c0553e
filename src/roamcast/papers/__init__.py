"""The papers' figures as campaigns, and their claims as questions with an answer.

A figure is declared in the module of its paper (`somer.py`, `georendezvous.py`, ...) as one `Figure`: a campaign for
each scale, the curves to draw from its measures, and the claims that the paper makes about them. Everything else is the
same for all figures: `reproduce` runs the campaign on Spark (resumable, as any campaign), seeds in rounds until all
claims are decided (`sequential`), estimates curves and claims with their intervals (`estimate`), judges, and writes a
chart, a page and a summary in JSON. To add a figure: declare it, put it into its module's `FIGURES`, and its module
into `catalogue`. Whether stored summaries are older than the sources: `sources` and `witness`.

    Figure(
        id="somer-6.6",
        title="Delivery ratio under node failures",
        ...
        quick=campaign(...), paper_scale=campaign(seeds=250, ...),      # tables as in a campaign file; the paper's runs
        curves=(Curve("SOMER", "somer", "delivery_ratio"), Curve("PS-MAODV", "ps-maodv", "delivery_ratio")),
        x="crash_share",                                                   # a swept setting: a column of the plan
        claims=(
            Claim(
                "SOMER delivers more than 75 % when 12 % of the nodes fail",
                reported="over 75 %",
                statistic=lambda values: values["SOMER"][0.12],
                region=at_least(0.75),
            ),
        ),
    )

- `curves` name the *raw* values: for every label and every x the mean of a measure over the seeds. Where runs have
  unequally many observations, `weight` lets each observation count the same instead of each run.
- `shown` turns raw values into what the paper draws (shares of the minimum, an index, a gain); see `shapes`.
- A claim's `statistic` is a number computed from the raw values, and `region` where it must lie. A claim holds if its
  whole confidence interval lies inside the region, fails if all of it lies outside, and is undecided otherwise: more
  seeds decide it. Where a paper says several things, declare several claims; prefer smooth statistics (how much higher
  is the curve at the end than in the middle) to positions (where is its minimum).
- A figure that holds claims that fail gets a `finding`: one paragraph on what was found about why.
- `sparse` is a third campaign where the paper's takes long: its networks and durations at fewer points of the axis.
- Figures that show the same runs name the one whose runs they are in `runs_of`, and share its campaign.
- Where measures per run do not suffice (a course over time, frames by category), `rows` replaces them.
"""
