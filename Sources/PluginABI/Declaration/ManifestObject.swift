/// One object of a manifest's JSON, written entry by entry.
///
/// It is no dictionary: to make the type of one in a module, the runtime searches the conformances of all libraries of the
/// process, again for each module that comes.
struct ManifestObject {
    private var text = "{"

    init() {}

    /// What most of them begin with.
    init(name: String) { add("name", .string(name)) }

    mutating func add(_ name: String, _ value: Value) {
        begin(name)
        value.writeJSON(to: &text)
    }

    /// Adds a list, of JSON.
    mutating func add(_ name: String, _ elements: [String]) {
        begin(name)
        text += "["
        for (index, element) in elements.enumerated() {
            if index > 0 { text += "," }
            text += element
        }
        text += "]"
    }

    private mutating func begin(_ name: String) {
        if text.utf8.count > 1 { text += "," }
        Value.string(name).writeJSON(to: &text)
        text += ":"
    }

    var json: String { text + "}" }
}
