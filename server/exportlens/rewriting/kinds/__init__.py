"""What a value of the code at hand is, as far as a rewrite must know it: its kind, its device, what tells its dtype and rank."""
