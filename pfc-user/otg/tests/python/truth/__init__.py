"""Parts of `truths.py`."""
