/// The part of the fixture's manifest from which `SearchFacade.swift` was generated.
let searchManifest = #"""
    {"name": "Search", "version": "1.0.0", "targets": [{"name": "Open", "actions": [
      {"name": "search", "remote": true, "rest": true, "parameters": [
        {"name": "text", "type": "string", "required": true}, {"name": "page", "type": "int", "default": 1}]},
      {"name": "all", "remote": true, "rest": true}]}]}
    """#
