"""What a harness calls before and after each tool call. See entry.py for the way in."""
