"""The gate: what each API key needs, and how a request is refused, whole or in part.

`table` is the whole of it, one row an API key. `need` has the words that rows are written in,
`echo` how an answer repeats a request, `engine` what follows from a row. All of it is pure.
"""
