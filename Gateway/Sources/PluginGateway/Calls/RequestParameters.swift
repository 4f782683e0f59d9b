import HTTPTypes
import Hummingbird
import NIOCore
import PluginABI
import PluginHost
import Synchronization

extension PluginGateway {
    /// Reads the parameters in the body of a request. No body means no parameters.
    ///
    /// - Parameters:
    ///   - action: The declaration of the action that gets them; `nil` if it is not known.
    ///   - callbacks: Makes the callbacks among them; `nil` if the client accepts no events.
    func parameters(
        of request: ReceivedRequest, for action: Catalog.KnownAction?, _ callbacks: CallbackMaker?
    ) async throws(Problem) -> GivenParameters {
        let type = try mediaType(of: request)
        let body = try await body(of: request)
        return try onceBodyIsRead { () throws(Problem) in try Self.parameters(body, type, for: action, callbacks) }
    }

    private static func parameters(
        _ body: ByteBuffer, _ type: String, for action: Catalog.KnownAction?, _ callbacks: CallbackMaker?
    ) throws(Problem) -> GivenParameters {
        switch type {
        case "application/json":
            return try parameters(json: body, for: action, callbacks)
        case "application/octet-stream":
            guard let name = action?.action.bodyParameter else {
                throw Problem(
                    .unsupportedMediaType,
                    "The action does not have exactly one parameter of the kind bytes. Send application/json.")
            }
            return .named([name: .bytes(body.withUnsafeReadableBytes { Bytes(copying: $0) })])
        case "":
            guard body.readableBytes == 0 else {
                throw Problem(.unsupportedMediaType, "The body has no Content-Type. Send application/json.")
            }
            return .named([:])
        default:
            throw Problem(
                .unsupportedMediaType,
                "Bodies of the type “\(type.prefix(100))” are not accepted. Send application/json, or application/octet-stream "
                    + "for the only parameter of the kind bytes.")
        }
    }

    private static func parameters(
        json body: ByteBuffer, for action: Catalog.KnownAction?, _ callbacks: CallbackMaker?
    ) throws(Problem) -> GivenParameters {
        let value: Value
        do throws(PluginError) {
            value = try body.withUnsafeReadableBytes { (bytes) throws(PluginError) in try Value(strictJSON: bytes) }
        } catch {
            throw Problem(error)
        }
        switch value {
        case .map(let entries): return .named(try action?.action.decoding(entries, callbacks) ?? entries)
        case .list(let values): return .inOrder(try action?.action.decoding(values, callbacks) ?? values)
        default:
            throw Problem(
                .invalidValue, "The body must be an object with the parameters by name, or a list of them in order.")
        }
    }

    /// The media type in lower case, without parameters; empty if there is none.
    func mediaType(of request: ReceivedRequest) throws(Problem) -> String {
        guard let text = request.header(.contentType) else { return "" }
        if text == "application/json" { return text }
        let parts = text.split(separator: ";", omittingEmptySubsequences: false)
        let type = parts[0].trimmingSpaces.lowercased()
        if type == "application/json" {
            for parameter in parts.dropFirst() {
                let parameter = parameter.filter { !" \t\"".contains($0) }.lowercased()
                guard !parameter.hasPrefix("charset=") || parameter == "charset=utf-8" else {
                    throw Problem(.unsupportedMediaType, "JSON must be in UTF-8.")
                }
            }
        }
        return type
    }

    /// Reads the body of a request, within its limits of size and time.
    func body(of request: ReceivedRequest) async throws(Problem) -> ByteBuffer {
        let limit = configuration.bodyLimit
        if request.header(.contentEncoding) != nil {
            throw Problem(.unsupportedMediaType, "The body must not be encoded (Content-Encoding).", closes: true)
        }
        if let coding = request.header(.transferEncoding), coding.lowercased() != "chunked" {
            throw Problem(.invalidHeader, "The header Transfer-Encoding can only be chunked.", closes: true)
        }
        if let text = request.header(.contentLength) {
            // A number that does not fit into an Int is larger than any limit.
            guard let length = Int(text), length <= limit else { throw .tooLarge(limit) }
            if length == 0 { return ByteBuffer() }
        }
        // Nobody needs to wait for a body that has arrived.
        if request.isWhole { return try await collect(request, upTo: limit) }
        return try await bodyInTime(of: request, upTo: limit)
    }

    /// Waits for the body of a request, at most for ``GatewayConfiguration/bodyTimeout``.
    private func bodyInTime(of request: ReceivedRequest, upTo limit: Int) async throws(Problem) -> ByteBuffer {
        let timeout = configuration.bodyTimeout
        let ended = EndReason()
        let reading = Task.immediate { () async -> Result<ByteBuffer, Problem> in
            do throws(Problem) {
                return .success(try await collect(request, upTo: limit))
            } catch {
                return .failure(error)
            }
        }
        bodies.withLock { $0 += 1 }
        let ending = EndHandler { reason in
            ended.set(reason)
            reading.cancel()
        }
        let number = calls.add(ending, until: .now + timeout)
        defer {
            calls.remove(number)
            bodies.withLock { $0 -= 1 }
        }
        let result = await withTaskCancellationHandler {
            await reading.value
        } onCancel: {
            reading.cancel()
        }
        if case .failure = result, ended.reason == .late {
            throw Problem(.bodyTimeout, "The body did not arrive within \(timeout).", closes: true)
        }
        return try result.get()
    }

    private func collect(_ request: ReceivedRequest, upTo limit: Int) async throws(Problem) -> ByteBuffer {
        do {
            return try await request.body.collect(upTo: limit)
        } catch {
            if error is NIOTooManyBytesError || (error as? HTTPError)?.status == .contentTooLarge {
                throw .tooLarge(limit)
            }
            guard Task.isCancelled else {
                throw Problem(.incompleteBody, "The body is not complete.", closes: true)
            }
            throw Problem(
                .hostStopping, "The gateway ended before the body had arrived.", retryAfter: 5, closes: true)
        }
    }

    /// Reads how long a call may take: `Timeout: 2.5`, in seconds, or `Timeout: 250ms`.
    func timeout(of request: ReceivedRequest) throws(Problem) -> Duration {
        guard let text = request.header(.timeout) else { return configuration.callTimeout }
        let isShort = text.hasSuffix("ms")
        let number = isShort ? text.dropLast(2) : text.hasSuffix("s") ? text.dropLast() : text[...]
        let parts = number.split(separator: ".", omittingEmptySubsequences: false)
        let areDigits = parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy { (48...57).contains($0) } }
        guard number.utf8.count <= 12, parts.count <= (isShort ? 1 : 2), areDigits, let amount = Double(number),
            amount > 0
        else {
            throw Problem(
                .invalidHeader, "The header Timeout must be more than 0: seconds (2.5), or milliseconds (250ms).")
        }
        return min(.seconds(isShort ? amount / 1000 : amount), configuration.maximumCallTimeout)
    }
}

/// Why the reading of a body was ended; `nil` if it was not.
private final class EndReason: Sendable {
    private let state = Mutex<CallsInFlight.Reason?>(nil)

    var reason: CallsInFlight.Reason? { state.withLock { $0 } }

    func set(_ reason: CallsInFlight.Reason) { state.withLock { $0 = reason } }
}

extension Problem {
    fileprivate static func tooLarge(_ limit: Int) -> Problem {
        Problem(.bodyTooLarge, "The body is larger than \(limit) bytes.", closes: true)
    }
}

extension HTTPField.Name {
    static let timeout = Self("Timeout")!
}

extension Substring {
    var trimmingSpaces: Substring {
        var text = self
        while text.first == " " || text.first == "\t" { text.removeFirst() }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return text
    }
}
