/// A manifest with everything that is hard to express in Swift: keywords, clashes, hyphens, types that the façade
/// itself uses, defaults of every kind, and documentation that tries to end its comment.
let nastyManifest = #"""
    {"name": "nasty-module.v2", "version": "1.0.0-rc.1+build", "summary": "It */ ends /* the comment\n\"\"\" \\(x) #if",
     "targets": [
      {"name": "class", "summary": "ünïcode \u202E turned \u0000 zero", "actions": [
       {"name": "default", "summary": "line one\nline two\r\n/// three", "parameters": [
         {"name": "default", "type": "string", "default": "a\"b\\(c)\n\u0007\u2028é"},
         {"name": "in", "type": "int", "required": true, "summary": "*/ in\nmore"},
         {"name": "inout", "type": "bool", "default": true}, {"name": "var", "type": "double", "default": -1e300},
         {"name": "self", "type": "any"}, {"name": "Self", "type": "any", "default": null}]},
       {"name": "init", "result": "null"}, {"name": "self", "result": "int"}, {"name": "Type", "result": "object"},
       {"name": "Protocol"}, {"name": "_", "result": "bool"}, {"name": "subscript"}, {"name": "deinit"},
       {"name": "a-b"}, {"name": "a.b"}, {"name": "aB"}, {"name": "a_b"}, {"name": "a-B", "async": true},
       {"name": "caller"}, {"name": "timeout"}, {"name": "func", "async": true, "result": "string"},
       {"name": "Parameters"}, {"name": "async"}, {"name": "await"}, {"name": "throws"}, {"name": "some"}]},
      {"name": "String", "actions": [{"name": "Int", "result": "string", "parameters": [
         {"name": "Value", "type": "any", "required": true}, {"name": "PluginError", "type": "list"},
         {"name": "caller", "type": "map", "required": true}, {"name": "timeout", "type": "int", "default": 7},
         {"name": "given", "type": "object"}, {"name": "x-y", "type": "bytes"}, {"name": "x.y", "type": "bytes"},
         {"name": "xY", "type": "int", "required": true}, {"name": "_", "type": "int", "required": true}]},
       {"name": "rest", "rest": true, "result": "map", "parameters": [
         {"name": "rest", "type": "map", "required": true}, {"name": "given", "type": "int"}]},
       {"name": "restOnly", "rest": true, "async": true}]},
      {"name": "Sendable", "actions": [{"name": "defaults", "parameters": [
         {"name": "b", "type": "bool", "default": false}, {"name": "i", "type": "int", "default": -9223372036854775808},
         {"name": "d", "type": "double", "default": 5e-324}, {"name": "s", "type": "string", "default": ""},
         {"name": "y", "type": "bytes", "default": "AAEC/w=="}, {"name": "e", "type": "bytes", "default": ""},
         {"name": "l", "type": "list", "default": [null, true, 1, 1.5, "x", [], {}]}, {"name": "k", "type": "list", "default": []},
         {"name": "m", "type": "map", "default": {"a\"": {"b": [1]}, "": null}}, {"name": "n", "type": "map", "default": {}},
         {"name": "a", "type": "any", "default": {"x": [1.0, -2]}}, {"name": "o", "type": "object"}]}]},
      {"name": "Routes", "actions": [{"name": "go", "parameters": [{"name": "key", "type": "string", "required": true},
         {"name": "page", "type": "int"}, {"name": "flag", "type": "bool", "required": true},
         {"name": "raw", "type": "any"}, {"name": "list", "type": "list"}, {"name": "_url", "type": "string"}]},
         {"name": "notFound"}]},
      {"name": "string", "actions": [{"name": "x"}]}, {"name": "empty"}, {"name": "class-", "actions": [{"name": "x"}]},
      {"name": "Typed", "actions": [
       {"name": "in-out", "result": "list<map<self?>>?", "rest": true, "parameters": [
         {"name": "written", "type": "self", "required": true}, {"name": "in", "type": "list<case>"},
         {"name": "d", "type": "case", "default": "de\"fault"}, {"name": "e", "type": "list<case?>", "default": ["", null]},
         {"name": "f", "type": "self", "default": {"init": 2, "a\"\\(b)": []}}, {"name": "g", "type": "map<list<int>>",
          "default": {"\"": [1]}}, {"name": "h", "type": "number", "default": -1}]},
       {"name": "Self_", "result": "none"}, {"name": "empty_", "result": "empty_"}, {"name": "cursor", "result": "Cursor?"},
       {"name": "written", "result": "bytes?"}, {"name": "Number", "result": "list<number>"}]}],
     "values": [
      {"name": "self", "summary": "*/ a\nb", "fields": [
       {"name": "init", "type": "number"}, {"name": "a\"\\(b)", "type": "list<self>", "summary": "\u202E"},
       {"name": "fields", "type": "int?"}, {"name": "field", "type": "any"}, {"name": "reader", "type": "Cursor?"},
       {"name": "Cursor", "type": "case?"}, {"name": "hash", "type": "bool?"}, {"name": "hashValue", "type": "map<none>?"},
       {"name": "written", "type": "string?"}, {"name": "🤷", "type": "object?"}, {"name": "self", "type": "bytes?"}]},
      {"name": "case", "cases": ["default", "de\"fault", "", "init", "none", "rawValue", "allCases", "a-b", "a.b", "self", "é"]},
      {"name": "number", "cases": [0, -1, {"name": "two", "value": 2}, {"name": "two", "value": 3}, -9223372036854775808]},
      {"name": "none", "fields": [{"name": "x", "type": "int"}]}, {"name": "empty_", "fields": []},
      {"name": "TypedValue", "fields": [{"name": "String", "type": "string"}]}, {"name": "unused-one", "cases": ["a"]}],
     "types": [{"name": "Routes", "actions": [{"name": "object", "result": "list"}, {"name": "later", "async": true}]},
               {"name": "Cursor", "actions": [{"name": "next", "result": "map"}, {"name": "backData", "result": "list<self>"}, {"name": "service", "result": "double"}]}],
     "services": [{"name": "Value", "version": "1.0.0", "target": "Sendable"},
                  {"name": "go-service", "version": "2.0.0-beta", "target": "class", "summary": "*/"},
                  {"name": "GoServiceClient", "version": "1.0.0", "target": "Routes"}],
     "routes": [
      {"pattern": "app://nasty/:key/:page(\\d+)?", "action": "Routes/go", "name": "default", "summary": "*/"},
      {"pattern": "app://nasty/{x/:key}?/y", "action": "Routes/go", "defaults": {"flag": true}},
      {"pattern": "app://:in.nasty/*", "action": "class/default", "name": "url"},
      {"pattern": "app://nasty/all/*/(\\d+)", "action": "Routes/go", "name": "all", "groups": {"1": "page"}},
      {"pattern": "app://nasty/a/:rest+", "action": "class/default", "name": "open"},
      {"pattern": "app://nasty/b/img-:key.png", "action": "Routes/go"}, {"pattern": "/any/:key", "action": "Routes/go"},
      {"pattern": "app://", "action": "Routes/go"}, {"pattern": "app://nasty/\"quoted\"", "action": "class/init"},
      {"pattern": "app://nasty/weird name", "action": "class/self", "name": "it's a \"name\"\n"}]}
    """#
