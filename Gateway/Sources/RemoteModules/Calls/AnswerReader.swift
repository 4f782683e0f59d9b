import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import PluginABI
import Synchronization

/// Receives an answer: as a whole, or in the parts of a stream. It is used on one event loop.
final class AnswerReader: HTTPClientResponseDelegate {
    typealias Response = Void

    /// A part of a stream.
    enum Part: Sendable {
        /// Bytes of the lines.
        case lines([UInt8])
        /// The events that are complete, or the reason why no more can follow.
        case events(Result<[EventReader.Event], PluginError>)
    }

    /// The types of bodies.
    enum Kind: Sendable {
        case json, bytes, problem, lines, events
        /// A type that no gateway sends.
        case other
    }

    /// What has been received.
    struct Answer: Sendable {
        var status = 0
        var kind = Kind.other
        var contentType = ""
        var tag: String?
        var body: [UInt8] = []
        /// Whether the head of the request was written to a connection.
        var isSent = false
        var hasHead = false
        /// Whether the head states how to find the end of the body. If it does not, a truncated body looks complete.
        var hasLength = true
        /// Whether the body was cut off because of its size.
        var isTooLarge = false
    }

    private let state = Mutex(Answer())
    private let events: Mutex<EventReader>
    private let limit: Int
    /// Receives the parts of a stream, and returns a future that succeeds when it can take the next one. `nil` if there
    /// are no streams.
    private let stream: (@Sendable (Part, any EventLoop) -> EventLoopFuture<Void>)?

    /// - Parameters:
    ///   - limit: The maximum size of a body, in bytes.
    ///   - stream: Receives the parts of lines and events.
    init(
        limit: Int, stream: (@Sendable (Part, any EventLoop) -> EventLoopFuture<Void>)? = nil
    ) {
        (self.limit, self.stream) = (limit, stream)
        events = Mutex(EventReader(limit: limit))
    }

    var answer: Answer { state.withLock(\.self) }
    /// Whether the body is so large that reading it takes long.
    var isLarge: Bool { state.withLock { $0.body.count > 64 << 10 } }

    /// How many bytes are kept of a body that no gateway sends, to quote it in an error.
    private static let excerpt = 4096

    private struct TooLarge: Error {}

    func didSendRequestHead(task: HTTPClient.Task<Void>, _ head: HTTPRequestHead) {
        state.withLock { $0.isSent = true }
    }

    func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
        let type = (head.headers.first(name: "Content-Type") ?? "").prefix { $0 != ";" && $0 != " " }.lowercased()
        let codings = head.headers[canonicalForm: "Transfer-Encoding"]
        let isChunked = codings.last?.lowercased() == "chunked"
        let hasLength = isChunked || head.headers.contains(name: "Content-Length")
        let kind: Kind =
            switch (head.status.code, type) {
            case _ where !hasLength: .other
            case (_, "application/problem+json"): .problem
            case (200, "application/json"): .json
            case (200, "application/octet-stream"): .bytes
            case (200, "application/jsonl") where stream != nil: .lines
            case (200, "text/event-stream") where stream != nil: .events
            default: .other
            }
        state.withLock { answer in
            (answer.hasHead, answer.status, answer.kind) = (true, Int(head.status.code), kind)
            answer.hasLength = hasLength
            answer.contentType = ForeignText.excerpt(type.utf8, limit: 80)
            answer.tag = head.headers.first(name: "ETag")
        }
        return task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
        let kind = state.withLock(\.kind)
        if kind == .lines || kind == .events, let stream {
            let bytes = Array(buffer.readableBytesView)
            return stream(kind == .lines ? .lines(bytes) : .events(read(bytes)), task.eventLoop)
        }
        let isTooLarge = state.withLock { answer in
            let most = kind == .other ? Self.excerpt : kind == .problem ? 64 << 10 : limit
            let room = most - answer.body.count
            answer.body += buffer.readableBytesView.prefix(max(0, room))
            answer.isTooLarge = buffer.readableBytes > room
            return answer.isTooLarge
        }
        return isTooLarge
            ? task.eventLoop.makeFailedFuture(TooLarge()) : task.eventLoop.makeSucceededVoidFuture()
    }

    private func read(_ bytes: [UInt8]) -> Result<[EventReader.Event], PluginError> {
        events.withLock { events in
            do throws(PluginError) { return .success(try events.read(bytes)) } catch { return .failure(error) }
        }
    }

    func didFinishRequest(task: HTTPClient.Task<Void>) throws {}
}
