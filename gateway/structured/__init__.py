"""Output that can be trusted: what is asked of a model, and proof that it was given.

:mod:`.negotiate` asks for JSON as each deployment can give it, :mod:`.check` holds an answer
against the caller's own schema, :mod:`.mend` reads answers that are JSON but for their dress,
:mod:`.reask` tells a model what was wrong. All pure; ``gateway.flow`` decides when.
"""
