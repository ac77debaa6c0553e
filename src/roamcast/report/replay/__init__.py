"""Playing a recorded run in a web page.

`recordings` finds the run in a directory, `data` turns its trace into what the page plays, `page` puts data, program
and style into one HTML document that needs nothing else, and `server` shows it on this machine. The program is plain
JavaScript in `web/`, without a build step and without a library.
"""
