"""One module for each sender's dialect: what is signed, what identifies a delivery, how it wants to be answered.

A profile holds the secrets and keeps no state: nonces and keys are remembered by the receiver's store.
"""
