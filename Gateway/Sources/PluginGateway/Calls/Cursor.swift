import PluginABI
import PluginHost

/// A result that is read element by element: an object with the action `next`, which returns null at the end. Each
/// element may take as long as a call.
struct Cursor: Sendable {
    private let object: Object
    private let running: RunningCall
    /// How many more elements may be read.
    private var remaining: Int
    /// The element that has been read already.
    private var first: String??

    /// Reads the first element.
    ///
    /// - Parameters:
    ///   - object: The object.
    ///   - running: The call that has returned it.
    ///   - limit: How many elements are read.
    /// - Throws: `notRepresentable` if it is not a cursor; the errors of `next`.
    init(_ object: Object, _ running: RunningCall, limit: Int) async throws(Problem) {
        (self.object, self.running, remaining) = (object, running, limit)
        do throws(PluginError) {
            first = .some(try await read())
        } catch {
            throw Problem(error.code == .unknownAction ? .noCursor : error)
        }
    }

    /// Returns the next element as JSON; `nil` at the end.
    mutating func next() async throws(PluginError) -> String? {
        let element: String?
        if let first {
            (element, self.first) = (first, nil)
        } else {
            element = try await read()
        }
        guard element != nil else { return nil }
        guard remaining > 0 else { throw .longCursor }
        remaining -= 1
        return element
    }

    private func read() async throws(PluginError) -> String? {
        try await running.perform { [object, running] () async throws(PluginError) in
            try await object.call("next", timeout: running.call.timeout)
        }.line
    }
}

extension PluginError {
    fileprivate static let noCursor = PluginError(
        .notRepresentable, "The result is an object without the action next, which cannot leave the program.")

    fileprivate static let longCursor = PluginError(
        .overloaded, "The cursor has more elements than the gateway sends in one response.")
}
