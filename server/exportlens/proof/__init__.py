"""What a rule claims, proved: its examples, exported for real under any interpreter that has torch."""
