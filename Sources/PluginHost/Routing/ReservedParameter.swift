import PluginABI

/// The names of parameters by which an action receives information about the URL. A URL cannot contain them.
enum ReservedParameter: String, CaseIterable {
    /// The URL as it was given.
    case url = "_url"
    /// The pattern that matched, or null.
    case pattern = "_pattern"
    /// Whether the caller requests an object, with `object(for:)`.
    case object = "_object"
}

extension PluginError {
    static func reservedParameter(_ name: String) -> PluginError {
        PluginError(
            .unknownParameter,
            "The parameter “\(name.shortened)” is set by the host; a URL cannot set it.")
    }
}
