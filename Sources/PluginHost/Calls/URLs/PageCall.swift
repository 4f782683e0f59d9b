import PluginABI
import Synchronization

/// All parameters of a page, whether the action that makes it declares them or not.
struct PageParameters {
    var values: [String: Value] = [:]
    /// The names of the parameters that are text of a URL, because the action does not declare them.
    var texts: Set<String> = []
}

/// The call of an action that makes a page, by a URL: the action gets the parameters that it accepts, the page gets all
/// of them.
final class PageCall {
    private let given: UnsafeBufferPointer<plugin_entry>
    private let accepted: UnsafeMutableBufferPointer<plugin_entry>
    private let calls: Calls
    private(set) var parameters = PageParameters()

    /// - Parameter given: The parameters that the caller passes; they must live as long as this object.
    init(_ given: UnsafeBufferPointer<plugin_entry>, _ calls: Calls) {
        (self.given, self.calls) = (given, calls)
        accepted = .allocate(capacity: given.count)
    }

    deinit { accepted.deallocate() }

    /// Returns the parameters that the caller passes and the endpoint accepts.
    func given(for endpoint: Unmanaged<Endpoint>?) -> UnsafeBufferPointer<plugin_entry> {
        guard let endpoint = endpoint?.takeUnretainedValue() else { return given }
        var count = 0
        for entry in given where entry.key.count == 0 || endpoint.accepts(entry.key) {
            accepted.initializeElement(at: count, to: entry)
            count += 1
        }
        return UnsafeBufferPointer(rebasing: accepted[..<count])
    }

    /// Notes the parameters of the page.
    ///
    /// - Parameter entries: The parameters with which the endpoint is called.
    func note(
        _ query: URLText.Query, _ endpoint: Unmanaged<Endpoint>?,
        _ entries: UnsafeBufferPointer<plugin_entry>
    ) {
        parameters = PageParameters()
        func add(_ entry: plugin_entry) {
            guard parameters.values[entry.key.text] == nil else { return }
            parameters.values[entry.key.text] = Value(copying: entry.value, host: calls.program.hostTable)
        }
        for entry in entries { add(entry) }
        for entry in given where !entry.key.isReserved { add(entry) }
        // If several items have the same name, the last one is used.
        for item in query.reversed() where parameters.values[item.name.string] == nil {
            guard !plugin_string(item.name).isReserved else { continue }
            parameters.values[item.name.string] = .string(item.value.string)
            parameters.texts.insert(item.name.string)
        }
        parameters.values.merge(calls.defaults(of: endpoint?.takeUnretainedValue())) { given, _ in given }
    }
}

/// The parameters of a page, as they were noted last.
final class NotedPage: Sendable {
    let parameters = Mutex(PageParameters())
}

extension Calls {
    /// Returns the defaults that an action declares.
    func defaults(of endpoint: Endpoint?) -> [String: Value] {
        let host = program.hostTable!
        let pairs = endpoint?.parameters.map { ($0.name, Value(copying: $0.defaultValue, host: host)) } ?? []
        return Dictionary(pairs) { first, _ in first }.filter { !$0.value.isNull }
    }
}
