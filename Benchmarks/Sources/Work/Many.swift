import PluginABI

/// Parts of a manifest that are made in a loop.
struct Many: ManifestPart {
    let parts: [any ManifestPart]
    func add(to module: ModuleDescription) { for part in parts { part.add(to: module) } }

    /// Targets with ten actions each, so many actions altogether.
    static func actions(_ count: Int) -> Many {
        Many(
            parts: stride(from: 0, to: count, by: 10).map { first in
                Target("Filler\(first / 10)") {
                    return (first..<min(first + 10, count)).map { number in Action("action\(number)") { number } }
                }
            })
    }
}
