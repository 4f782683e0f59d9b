/// An HTTP method, for routes that answer only one. The raw values are the words in manifests and route files.
///
/// A URL that is opened without a method is opened with ``get``, like a link that is followed.
public enum RouteMethod: String, Sendable, CaseIterable {
    /// Reads something, without side effects.
    case get = "GET"
    /// Creates something, or does anything else.
    case post = "POST"
    /// Stores something as a whole.
    case put = "PUT"
    /// Changes something in part.
    case patch = "PATCH"
    /// Removes something.
    case delete = "DELETE"

    /// The method that a number in a request stands for; `nil` if it stands for none.
    package init?(number: UInt32) {
        switch number {
        case PLUGIN_METHOD_GET: self = .get
        case PLUGIN_METHOD_POST: self = .post
        case PLUGIN_METHOD_PUT: self = .put
        case PLUGIN_METHOD_PATCH: self = .patch
        case PLUGIN_METHOD_DELETE: self = .delete
        default: return nil
        }
    }

    /// The number in a request.
    package var number: UInt32 {
        switch self {
        case .get: PLUGIN_METHOD_GET
        case .post: PLUGIN_METHOD_POST
        case .put: PLUGIN_METHOD_PUT
        case .patch: PLUGIN_METHOD_PATCH
        case .delete: PLUGIN_METHOD_DELETE
        }
    }
}
