"""The receiver library of CYBERCUBE's standard, for applications that drive verification and processing themselves. A
`Receiver` with the profile `Cybercube` does all of this already."""
