"""Figures and tables for a paper, in the measures of its venue, with the data beside them."""
