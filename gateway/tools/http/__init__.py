"""Tools that call HTTP endpoints: the operator's own (:mod:`.endpoint`), and ``http_get``
(:mod:`.fetch`). Both go through one guarded door (:mod:`.door`)."""
