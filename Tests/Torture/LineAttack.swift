import Foundation

/// Lines on the control socket, and clients that misbehave. The host continues to answer other clients.
final class LineAttack: Attack {
    private let program: Program
    private let victims: Victims
    private var lines = 0
    private var largest = 0

    init(_ program: Program, _ victims: Victims) { (self.program, self.victims) = (program, victims) }

    var summary: String { "\(lines) lines, at most \(largest) MiB resident" }

    private static let requests = [
        #"{"jsonrpc":"2.0","id":1,"method":"list","params":{"all":true}}"#,
        #"{"jsonrpc":"2.0","id":2,"method":"call","params":{"target":"Victim01","action":"act","parameters":{},"timeout":1}}"#,
        #"{"jsonrpc":"2.0","id":3,"method":"call","params":{"object":17,"action":"call","parameters":{"n":[1,{"a":null}]}}}"#,
        #"{"jsonrpc":"2.0","id":4,"method":"call","params":{"service":"S","version":"1.0","action":"act","parameters":{}}}"#,
        #"{"jsonrpc":"2.0","id":"5","method":"open","params":{"url":"app://Victim01/act?a=%C3%A9&b=1#f","local":true}}"#,
        #"{"jsonrpc":"2.0","id":6,"method":"post","params":{"event":"torture","parameters":{"a":"b"},"sticky":true}}"#,
        #"{"jsonrpc":"2.0","id":7,"method":"release","params":{"object":3}}"#,
        #"{"jsonrpc":"2.0","id":8,"method":"inspect","params":{"file":"/dev/zero","timeout":1}}"#,
        #"{"jsonrpc":"2.0","id":9,"method":"remove","params":{"name":"Victim02","force":true,"dryRun":true}}"#,
        #"{"jsonrpc":"2.0","id":10,"method":"rollback","params":{"name":"Victim02","version":"1.0.0","dryRun":true}}"#,
        #"{"jsonrpc":"2.0","id":11,"method":"versions","params":{"name":"Victim01"}}"#,
        #"{"jsonrpc":"2.0","id":12,"method":"events","params":{"after":0,"timeout":0.1}}"#,
        #"[{"jsonrpc":"2.0","id":13,"method":"stats"},{"jsonrpc":"2.0","method":"routes"}]"#,
    ]

    func run(in folder: Folder, _ random: inout SplitMix) throws {
        let plugins = try folder.folder("plugins")
        for number in 1...2 { try put(victims.module(number), at: "\(plugins)/\(number).so") }
        let socket = "\(folder.path)/s"
        let host = try program.start(["run", "--plugins", plugins, "--socket", socket], in: folder)
        guard eventually(within: 60, { Client.ask(socket, "list", seconds: 5) != nil }) else {
            throw Finding(message: "the host does not answer at its start; it \(host.wait(seconds: 0).description)")
        }
        for _ in 0..<8 {
            try misbehave(socket, &random)
            guard host.isRunning else { throw Finding(message: "the host \(host.wait(seconds: 1).description)") }
            let asked = ContinuousClock.now
            // When many clients connect at once, the socket's queue may at first be full for the next client.
            guard eventually(within: 20, { Client.ask(socket, "list", seconds: 20) != nil }) else {
                throw Finding(message: "another client is not answered within 20 s")
            }
            let taken = ContinuousClock.now - asked
            if taken > .seconds(5) { throw Finding(message: "another client waited for \(taken)") }
            largest = max(largest, host.memory)
            if host.memory > 2048 { throw Finding(message: "the host uses \(host.memory) MiB") }
        }
        host.signal(SIGTERM)
        let outcome = host.wait(seconds: 40)
        guard outcome.signal == 0, outcome.code == 0, !outcome.isLate else {
            throw Finding(message: "after SIGTERM the host \(outcome.description)")
        }
    }

    private func misbehave(_ socket: String, _ random: inout SplitMix) throws {
        switch random.below(8) {
        case 0:
            // Nesting around the limits of readers.
            let piece = random.pick(["[", "{\"a\":", "[[],", "{\"a\":[", "]"])
            let count = random.pick([511, 512, 513, 514, 1_000, 100_000])
            send([Array(String(repeating: piece, count: count).utf8)], socket)
        case 1:
            // One or more unterminated lines at the same time.
            let clients = (0..<random.below(20)).compactMap { _ in Client(socket) }
            for client in clients {
                client.send([UInt8](repeating: UInt8(ascii: " "), count: 1 << random.below(22)), seconds: 0.2)
            }
        case 2:
            // Requests whose answers are never read.
            let clients = (0..<random.below(10)).compactMap { _ in Client(socket) }
            let question = Array((Self.requests[0] + "\n").utf8)
            for client in clients { client.send(Array(repeating: question, count: 500).flatMap(\.self), seconds: 0.2) }
        case 3:
            // Clients that send nothing.
            let clients = (0..<200).compactMap { _ in Client(socket) }
            withExtendedLifetime(clients) { _ = usleep(50_000) }
        case 4:
            send([[UInt8](repeating: UInt8(random.below(256)), count: random.below(1 << 20))], socket)
        default:
            send(
                (0..<100).map { _ in TextMutation.mutate(Array(random.pick(Self.requests).utf8), &random) }, socket)
        }
    }

    private func send(_ texts: [[UInt8]], _ socket: String) {
        guard let client = Client(socket) else { return }
        lines += texts.count
        client.send(texts.flatMap { $0 + [0x0A] })
        for _ in texts { if client.line(seconds: 0.2) == nil { break } }
    }
}
