import Foundation

struct Failure: Error, CustomStringConvertible {
    let description: String
}

/// One run: starts the servers, measures, prints the table.
struct Run {
    let settings: Settings

    func all() async throws {
        let server = try ServerProcess(plugins: settings.plugins)
        defer { server.end() }
        print("What\tBare route\tGateway\tGateway / bare")
        for (name, request) in [("POST /call/Shop/item", Wrk.call), ("GET /shop/7", Wrk.route)] {
            try compare(name, request, server)
        }
        // Each is measured in a new process, since memory that was freed earlier would be reused, and not be counted.
        for (name, port) in [("bare", \ServerProcess.barePort), ("gateway", \ServerProcess.gatewayPort)] {
            let server = try ServerProcess(plugins: settings.plugins)
            defer { server.end() }
            // Calls of an action that is not known to be short yet would be refused beyond the limit for its module. The
            // first requests may fail, because the host is still starting.
            _ = try? Wrk.route.run(server[keyPath: port], settings)
            let before = server.memory
            let clients = try await Clients(count: settings.streams, port: server[keyPath: port], path: "/shop/7")
            try await clients.wait(for: "\"apple\"")
            let each = Double(server.memory - before) / Double(settings.streams) / 1024
            print("Idle connection, \(name)\t\(each.formatted) KiB each")
            await clients.close()
        }
        let streaming = try ServerProcess(plugins: settings.plugins)
        defer { streaming.end() }
        let before = streaming.memory
        let streams = try await Clients(count: settings.streams, port: streaming.gatewayPort, path: "/events")
        try await streams.wait(for: ": open")
        let each = Double(streaming.memory - before) / Double(settings.streams) / 1024
        print("\(settings.streams) event streams\t\t\(each.formatted) KiB each")
        try FileManager.default.removeItem(atPath: settings.plugins + "/shop.so")
        try await streams.wait(for: "event: removed")
        guard let happened = streams.text.firstMatch(of: /"time":([0-9]+)/).flatMap({ Double($0.1) }) else {
            throw Failure(description: "An event has no time.")
        }
        let (first, last) = streams.times(of: "event: removed")
        print("One change until the first has it\t\t\((first - happened).formatted) ms")
        print("One change until all have it\t\t\((last - happened).formatted) ms")
        await streams.close()
    }

    /// Runs alternating rounds, so that other activity of the machine affects both.
    private func compare(_ name: String, _ request: Wrk, _ server: ServerProcess) throws {
        var rounds: [(bare: Round, gateway: Round)] = []
        for number in -1..<settings.rounds {
            let isSwapped = number % 2 == 0
            var figures: [Int: Round] = [:]
            for port in isSwapped ? [server.gatewayPort, server.barePort] : [server.barePort, server.gatewayPort] {
                let cpu = server.processorTime
                var round = try request.run(port, settings)
                round.processor = (server.processorTime - cpu) * 1e6 / round.requests
                figures[port] = round
            }
            guard let bare = figures[server.barePort], let gateway = figures[server.gatewayPort] else { continue }
            // The first round only warms up.
            if number >= 0 { rounds.append((bare, gateway)) }
        }
        func row(_ unit: String, _ figure: (Round) -> Double) {
            let (bare, gateway) = (median(rounds.map { figure($0.bare) }), median(rounds.map { figure($0.gateway) }))
            let ratio = median(rounds.map { figure($0.gateway) / figure($0.bare) })
            print("\(name), \(unit)\t\(bare.formatted)\t\(gateway.formatted)\t\(ratio.formatted)")
        }
        row("requests per second", \.throughput)
        row("99th percentile in ms", \.percentile99)
        row("processor time in µs", \.processor)
    }

    private func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return .nan }
        return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
    }
}

extension Double {
    var formatted: String { self >= 100 ? String(format: "%.0f", self) : String(format: "%.2f", self) }
}

/// The figures of one round.
struct Round {
    var requests = 0.0
    var throughput = 0.0
    /// In milliseconds.
    var percentile99 = 0.0
    /// The processor time of the server for each request, in microseconds.
    var processor = 0.0
}

/// The client wrk with a request.
struct Wrk {
    let path: String
    /// The body of a POST; `nil` for a GET.
    var body: String?

    static let call = Wrk(path: "/call/Shop/item", body: "{\"id\": 7}")
    static let route = Wrk(path: "/shop/7")

    func run(_ port: Int, _ settings: Settings) throws -> Round {
        let script = FileManager.default.temporaryDirectory.path + "/gateway-bench-\(getpid()).lua"
        var lines = ""
        if let body {
            lines = """
                wrk.method = "POST"
                wrk.body = '\(body)'
                wrk.headers["Content-Type"] = "application/json"
                """
        }
        try Data(lines.utf8).write(to: URL(filePath: script))
        defer { try? FileManager.default.removeItem(atPath: script) }
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [
            "wrk", "-t1", "-c\(settings.connections)", "-d\(settings.seconds)s", "--latency", "-s", script,
            "http://127.0.0.1:\(port)\(path)",
        ]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard !text.contains("Non-2xx"), let throughput = text.firstMatch(of: /Requests\/sec: +([0-9.]+)/),
            let late = text.firstMatch(of: /99% +([0-9.]+)(us|ms|s)/),
            let requests = text.firstMatch(of: /([0-9]+) requests in/)
        else { throw Failure(description: "wrk failed:\n\(text)") }
        let unit = late.2 == "us" ? 0.001 : late.2 == "ms" ? 1 : 1000
        return Round(
            requests: Double(requests.1) ?? .nan, throughput: Double(throughput.1) ?? .nan,
            percentile99: (Double(late.1) ?? .nan) * unit)
    }
}
