"""Measures recall on labelled questions, and fits its floor to them. Not on the hook's path."""
