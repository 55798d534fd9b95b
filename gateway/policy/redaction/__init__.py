"""Personal data and secrets: found, replaced before anything leaves, put back in the answer.

``checks`` proves numbers, ``rule`` says what a pattern is, ``mail numbers phones secrets`` are
the tables of patterns, ``own`` the operator's; ``scan`` finds spans in a text, ``masking`` gives
them placeholders, ``request`` walks a request, ``restore`` puts values back into a stream.
Nothing here is kept beyond a call, and nothing here is ever logged.
"""
