import Foundation

/// The process of the measured servers.
final class ServerProcess {
    private let process = Process()
    private(set) var barePort = 0
    private(set) var gatewayPort = 0

    init(plugins: String) throws {
        process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["serve", plugins]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        var text = ""
        while barePort == 0 || gatewayPort == 0 {
            let data = output.fileHandleForReading.availableData
            guard !data.isEmpty else { throw Failure(description: "The servers do not start.") }
            text += String(decoding: data, as: UTF8.self)
            for line in text.split(separator: "\n") {
                let words = line.split(separator: " ")
                guard words.count == 2, let port = Int(words[1]) else { continue }
                if words[0] == "bare" { barePort = port } else { gatewayPort = port }
            }
        }
    }

    func end() {
        process.terminate()
        process.waitUntilExit()
    }

    /// The resident memory, in bytes.
    var memory: Int {
        let text = (try? String(contentsOfFile: "/proc/\(process.processIdentifier)/statm", encoding: .utf8)) ?? ""
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0)
            * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    /// The processor time so far, in seconds.
    var processorTime: Double {
        let text = (try? String(contentsOfFile: "/proc/\(process.processIdentifier)/stat", encoding: .utf8)) ?? ""
        // After the name, which can contain spaces: fields 14 and 15 of the line.
        let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return .nan }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }
}
