import PluginABI

/// Objects of one type that somebody holds.
package struct LiveObjects: Sendable {
    /// The module whose objects they are; empty for the program.
    package let module: String
    /// The type as the manifest calls it; `callback` for closures that were passed as values.
    package let type: String
    /// How many there are.
    package let count: Int
}
