import Foundation
import Synchronization

/// A server that answers `/modules.json` as a gateway does, and calls as a test requires.
final class FakeBalancer: Sendable {
    /// What a connection does with a request.
    enum Answer: Sendable {
        /// Sends a text, and keeps the connection open.
        case text(String)
        /// Sends a text, and closes the connection.
        case last(String)
        /// Sends nothing, until the client closes the connection.
        case silence
        /// Sends a head, and then bytes without an end.
        case endless(String)
    }

    private struct State {
        var calls: [String] = []
        var connections = 0
        var offers: [String]
        var questions = 0
        var isOver = false
        var descriptors: Set<Int32> = []
    }

    let port: Int
    private let descriptor: Int32
    private let answer: @Sendable (_ request: String, _ number: Int) -> Answer
    private let state: Mutex<State>

    /// Two actions: `again`, which is idempotent, and `once`, which is not.
    static let offers = """
        {"modules": [{"name": "ModB", "version": "1.0.0", "targets": [{"name": "B", "actions": [
            {"name": "again", "idempotent": true}, {"name": "once"}, {"name": "later", "async": true}, {"name": "items", "result": "Items"}]}],
            "types": [{"name": "Items", "actions": [{"name": "next"}]}]}]}
        """

    /// - Parameter answer: The answer to a call, given the text of the request and its number, from 1.
    init(
        offers: String = FakeBalancer.offers,
        _ answer: @escaping @Sendable (_ request: String, _ number: Int) -> Answer
    ) throws {
        self.answer = answer
        state = Mutex(State(offers: [offers]))
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.descriptor = descriptor
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 64) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard status else { throw POSIXError(.EADDRINUSE) }
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread { [self] in acceptAll() }
    }

    var url: String { "http://127.0.0.1:\(port)" }
    /// The requests so far that were calls.
    var calls: [String] { state.withLock(\.calls) }

    /// How often the offers were requested.
    var questions: Int { state.withLock(\.questions) }

    func setOffers(_ offers: String) { state.withLock { $0.offers = [offers] } }

    /// Alternates between the offers of two hosts.
    func alternate(_ first: String, _ second: String) { state.withLock { $0.offers = [first, second] } }

    func end() {
        let descriptors = state.withLock { state in
            state.isOver = true
            return state.descriptors
        }
        shutdown(descriptor, Int32(SHUT_RDWR))
        for descriptor in descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }

    private func acceptAll() {
        while true {
            let connection = accept(descriptor, nil, nil)
            guard connection >= 0 else { break }
            let isOver = state.withLock { state in
                state.descriptors.insert(connection)
                return state.isOver
            }
            if isOver { shutdown(connection, Int32(SHUT_RDWR)) }
            Thread.detachNewThread { [self] in
                serve(connection)
                state.withLock { _ = $0.descriptors.remove(connection) }
                close(connection)
            }
        }
        close(descriptor)
    }

    private func serve(_ connection: Int32) {
        while let request = read(connection) {
            if request.hasPrefix("GET /modules.json") {
                let offers = state.withLock { state in
                    state.questions += 1
                    return state.offers[state.questions % state.offers.count]
                }
                guard send(connection, FakeBalancer.ok(offers)) else { return }
                continue
            }
            let number = state.withLock { state in
                state.calls.append(request)
                return state.calls.count
            }
            switch answer(request, number) {
            case .text(let text): guard send(connection, text) else { return }
            case .last(let text):
                _ = send(connection, text)
                return
            case .silence: while receive(connection) != nil {}
            case .endless(let head):
                guard send(connection, head) else { return }
                let part = String(repeating: "x", count: 65_536)
                while send(connection, part) {}
                return
            }
        }
    }

    private func read(_ connection: Int32) -> String? {
        var text = ""
        while true {
            if let end = text.range(of: "\r\n\r\n") {
                let head = text[..<end.lowerBound].lowercased()
                let length = head.range(of: "content-length: ").flatMap {
                    Int(head[$0.upperBound...].prefix { $0.isNumber })
                }
                if text[end.upperBound...].utf8.count >= length ?? 0 { return text }
            }
            guard let part = receive(connection) else { return nil }
            text += part
        }
    }

    private func receive(_ connection: Int32) -> String? {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(connection, &buffer, buffer.count, 0)
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }

    private func send(_ connection: Int32, _ text: String) -> Bool {
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { return false }
            sent += count
        }
        return true
    }

    // MARK: Answers

    static func ok(_ body: String, type: String = "application/json") -> String { whole("200 OK", type, body) }

    static func whole(_ status: String, _ type: String, _ body: String) -> String {
        "HTTP/1.1 \(status)\r\nContent-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    static func problem(_ status: String, _ code: String) -> String {
        whole(status, "application/problem+json", "{\"code\": \"\(code)\", \"detail\": \"Because.\"}")
    }
}
