import Foundation

/// Measures the gateway beside bare routes of Hummingbird, and prints one table. See Gateway/scripts/bench.
@main
struct GatewayBench {
    static func main() async throws {
        var arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "serve" { return try await Server.run(folder: arguments.dropFirst().first ?? "") }
        var settings = Settings()
        while let option = arguments.popFirst() {
            guard let value = arguments.popFirst(), settings.set(option, value) else {
                FileHandle.standardError.write(Data("GatewayBench: unknown or incomplete argument “\(option)”.\n".utf8))
                exit(64)
            }
        }
        try await Run(settings: settings).all()
    }
}

struct Settings {
    var plugins = ""
    var rounds = 10
    /// How long a round takes, in seconds.
    var seconds = 2
    var connections = 16
    var streams = 1000

    /// Returns false if there is no such option, or if it cannot have this value.
    mutating func set(_ option: String, _ value: String) -> Bool {
        if option == "--plugins" {
            plugins = value
            return true
        }
        guard let number = Int(value), number > 0 else { return false }
        switch option {
        case "--rounds": rounds = number
        case "--seconds": seconds = number
        case "--connections": connections = number
        case "--streams": streams = number
        default: return false
        }
        return true
    }
}
