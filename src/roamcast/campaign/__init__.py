"""Campaigns: many runs, planned from one file and simulated on Spark. `analysis` measures them."""
