"""The gate: what each API key needs, how a request is refused, and what answers show. No I/O.

What a request needs: `table` has one row for each API key, written with the declarations of `need`
and the conditions of `conditions`. `rights` asks the authorizer for what a row declares, and
`topic_resolver` finds the topics that must be known before (`topics_known`). `engine` checks a
request against its row; `topics`, `offsets`, `transactions` and `tokens` do so for APIs with rules
of their own.

How a request is refused: `answers` declares it with `echo`, and `refusals` has the two answers that
no declaration fits.

What answers show: `shown` declares it with `disclosure`; `showing` takes out the rest, helped by
`places` and `viewer`. `harmless` lists fields that look as if they disclosed something and do not.
The fields of requests about which the gate asks for no right are listed in `harmless_requests`.
"""
