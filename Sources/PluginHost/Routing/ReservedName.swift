import PluginABI

/// The names under which an action may declare parameters that the host itself provides. A caller cannot use
/// these names in a rest.
enum ReservedName: String, CaseIterable {
    /// The URL as it was given.
    case url = "_url"
    /// The pattern of the route that matched, or null.
    case pattern = "_pattern"
    /// Whether the caller requests an object, with `object(for:)`.
    case object = "_object"
    /// The name of an event along the chain.
    case event = "_event"
    /// All parameters of an event along the chain.
    case parameters = "_parameters"
}

extension plugin_string {
    /// Whether the name is reserved.
    @inline(__always)
    var isReserved: Bool {
        count > 0 && bytes.pointee == UInt8(ascii: "_") && isReservedWord
    }

    @inline(never)
    private var isReservedWord: Bool { ReservedName(rawValue: text) != nil }
}

extension PluginError {
    static func reservedParameter(_ name: String) -> PluginError {
        PluginError(
            .unknownParameter,
            "The parameter “\(name.shortened)” is set by the host; a URL cannot set it.")
    }
}
