/// The objects of one type that have a holder.
package struct LiveObjects: Sendable {
    /// The module that owns the objects; empty for the program.
    package let module: String
    /// The type as it is named in the manifest; `callback` for closures that were passed as values.
    package let type: String
    /// The number of objects.
    package let count: Int
}
