"""Loops on tensor data as while_loop, scan, map or a fixed number of rounds; what leaves them early and what is read behind them."""
