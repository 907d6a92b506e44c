"""Verifies Countersign receipts, written from the specifications only. See README.md."""
