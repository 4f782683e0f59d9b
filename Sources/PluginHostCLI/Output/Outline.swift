internal import PluginABI

extension Value {
    /// The value and everything in it as indented lines, for people.
    var outline: String { outlineLines.joined(separator: "\n") }

    private var outlineLines: [String] {
        switch self {
        case .map(let entries):
            entries.sorted { $0.key < $1.key }.flatMap { key, value in
                value.isNested
                    ? ["\(key.printable):"] + value.outlineLines.map { "  " + $0 }
                    : ["\(key.printable): \(value.readable.printable)"]
            }
        case .list(let values):
            values.flatMap { value in
                value.outlineLines.enumerated().map { ($0.offset == 0 ? "- " : "  ") + $0.element }
            }
        default: [readable.printable]
        }
    }

    private var isNested: Bool {
        switch self {
        case .map(let entries): !entries.isEmpty
        case .list(let values): !values.isEmpty
        default: false
        }
    }
}
