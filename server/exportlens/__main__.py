"""`python -m exportlens`."""

from exportlens.cli import main

main()
