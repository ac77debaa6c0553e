"""From traces to measures per run, and from these to means with confidence intervals: steps from table to table."""
