"""Deliveries that are acknowledged and not processed yet, and the worker that processes them."""
