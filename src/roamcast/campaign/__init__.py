"""Campaigns: many runs, planned from one file and simulated on Spark. Measuring them is the business of `analysis`."""
