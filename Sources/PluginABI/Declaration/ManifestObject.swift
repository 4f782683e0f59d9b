/// A JSON object of a manifest, written entry by entry.
///
/// It does not use a dictionary: to make a dictionary type in a module, the runtime searches the conformances of all
/// libraries in the process, again for each module.
struct ManifestObject {
    private var text = "{"

    init() {}

    /// Makes an object that begins with a name.
    init(name: String) { add("name", .string(name)) }

    mutating func add(_ name: String, _ value: Value) {
        begin(name)
        text += value.json
    }

    /// Adds a list whose elements are JSON.
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
        text += Value.string(name).json
        text += ":"
    }

    var json: String { text + "}" }
}
