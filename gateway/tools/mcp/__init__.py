"""Tools of MCP servers.

:mod:`.settings` says which server, :mod:`.catalogue` which of its tools are offered and as what,
:mod:`.server` owns the connection, :mod:`.session` and :mod:`.wire` speak the protocol through the
official SDK. The SDK takes half a second to import, so only the last two import it, and they are
imported when the first server is connected to.
"""
