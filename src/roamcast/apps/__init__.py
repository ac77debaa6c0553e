"""Applications on live nodes, each with pages that its node serves itself.

They use the public Python API only (`roamcast.Node`), so they are also the test of what that API is like to use.
`server.py` serves pages; each application is a package of its own.
"""
