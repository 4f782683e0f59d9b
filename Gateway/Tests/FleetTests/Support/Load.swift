import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Synchronization

/// A client that continuously calls the module through the balancer. Each request has its own number.
final class Load: Sendable {
    /// A request and its outcome.
    struct Request {
        let id: Int
        let isIdempotent: Bool
        /// In milliseconds of the monotonic clock.
        let begin: Int
        let end: Int
        /// `nil` if there was no answer.
        let status: Int?
        let text: String
        /// The server whose answer broke off, if one did. Only the client can then send the request again.
        let broken: String?
        /// The server that answered, as reported by HAProxy.
        let server: String?

        /// The version that answered, and its host.
        var answer: (version: String, host: String)? {
            guard status == 200 else { return nil }
            let parts = text.dropFirst().dropLast().split(separator: " ")
            return parts.count == 3 && parts[2] == "\(id)" ? (String(parts[0]), String(parts[1])) : nil
        }

        /// Whether the broken version has answered.
        var isBroken: Bool { status == 422 && text.contains("This version is broken.") }
    }

    private let address: String
    private let requests = Mutex<[Request]>([])
    private let next = Atomic(0)
    private let isEnding = Atomic(false)
    private let tasks = Mutex<[Task<Void, Never>]>([])

    /// - Parameters:
    ///   - address: The URL of the balancer.
    ///   - clients: How many requests are made at the same time.
    init(_ address: String, clients: Int = 6) {
        self.address = address
        tasks.withLock { tasks in
            tasks = (0..<clients).map { _ in
                Task { [self] in
                    while !isEnding.load(ordering: .relaxed) {
                        await ask()
                        try? await Task.sleep(for: .milliseconds(8))
                    }
                }
            }
        }
    }

    /// Ends the load as soon as the outstanding requests are answered.
    func end() async -> [Request] {
        isEnding.store(true, ordering: .relaxed)
        for task in tasks.withLock({ $0 }) { await task.value }
        return all
    }

    var all: [Request] { requests.withLock { $0 } }

    /// Waits until more requests are answered.
    func more(_ count: Int) async -> Bool {
        let target = all.count + count
        return await becomesTrue { all.count >= target }
    }

    private func ask() async {
        let id = next.add(1, ordering: .relaxed).newValue
        let isIdempotent = id % 3 != 0
        var request = HTTPClientRequest(url: "\(address)/call/Shop/\(isIdempotent ? "look" : "buy")")
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.headers.add(name: "Authorization", value: "Bearer \(Lab.token)")
        request.body = .bytes(ByteBuffer(string: "{\"id\": \(id)}"))
        let begin = now()
        var (status, text, server, broken) = (Int?.none, "", String?.none, String?.none)
        for _ in 0..<2 {
            do {
                let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
                server = response.headers.first(name: "X-Served-By")
                text = String(buffer: try await response.body.collect(upTo: 1 << 16))
                status = Int(response.status.code)
            } catch {
                text = "\(error)"
                guard server != nil, isIdempotent, broken == nil else { break }
                broken = server
                continue
            }
            break
        }
        let answer = Request(
            id: id, isIdempotent: isIdempotent, begin: begin, end: now(), status: status, text: text, broken: broken,
            server: server)
        requests.withLock { $0.append(answer) }
    }
}

/// The monotonic clock, in milliseconds.
func now() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}
