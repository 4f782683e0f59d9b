import AsyncHTTPClient
import Foundation
import NIOCore
import PluginABI
import Synchronization

/// A browser without a window, driven by WebDriver.
final class Browser: Sendable {
    private let driver: Mutex<Process>
    private let base: String
    private let session = Mutex("")

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Whether Debian's packages `chromium` and `chromium-driver` are installed.
    static var isInstalled: Bool {
        ["chromium", "chromedriver"].allSatisfy { FileManager.default.isExecutableFile(atPath: "/usr/bin/\($0)") }
    }

    init() async throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/chromedriver")
        process.arguments = ["--port=0"]
        let output = Pipe()
        (process.standardOutput, process.standardError) = (output, FileHandle.nullDevice)
        process.standardInput = FileHandle.nullDevice
        try process.run()
        driver = Mutex(process)
        let handle = output.fileHandleForReading
        let port = try await onThread { () -> Int? in
            var text = ""
            while case let data = handle.availableData, !data.isEmpty {
                text += String(decoding: data, as: UTF8.self)
                // “ChromeDriver was started successfully on port 12345.”
                if let match = text.firstMatch(of: /on port ([0-9]+)\./) { return Int(match.1) }
            }
            return nil
        }
        guard let port else { throw Failure(description: "chromedriver does not start.") }
        base = "http://127.0.0.1:\(port)"
        var arguments = [
            "--headless=new", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
            "--user-data-dir=\(try makeFolder())",
        ]
        // The sandbox of the browser does not run as root.
        if geteuid() == 0 { arguments.append("--no-sandbox") }
        let options: Value = ["binary": "/usr/bin/chromium", "args": .list(arguments.map(Value.string))]
        let capabilities: Value = [
            "alwaysMatch": ["goog:chromeOptions": options, "goog:loggingPrefs": ["browser": "ALL"]]
        ]
        do {
            let answer = try await send("POST", "/session", ["capabilities": capabilities])
            let id = answer["sessionId"]?.string ?? ""
            session.withLock { $0 = id }
        } catch {
            driver.withLock { _ = kill($0.processIdentifier, SIGKILL) }
            throw error
        }
    }

    /// Ends the browser, then its driver.
    func end() async {
        _ = try? await command("DELETE", "")
        // The driver ignores SIGTERM.
        driver.withLock { _ = kill($0.processIdentifier, SIGKILL) }
    }

    private func send(_ method: String, _ path: String, _ body: Value? = nil) async throws -> Value {
        var request = HTTPClientRequest(url: base + path)
        request.method = .RAW(value: method)
        if let body { request.body = .bytes(ByteBuffer(string: body.json)) }
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(120))
        let text = String(buffer: try await response.body.collect(upTo: 64 << 20))
        let value = try Value(json: text)["value"] ?? .null
        guard response.status == .ok else {
            throw Failure(description: "\(path): \(value["message"]?.string ?? text)")
        }
        return value
    }

    private func command(_ method: String, _ path: String, _ body: Value? = nil) async throws -> Value {
        try await send(method, "/session/\(session.withLock { $0 })\(path)", body)
    }

    // MARK: What a test does

    func open(_ url: String) async throws { _ = try await command("POST", "/url", ["url": .string(url)]) }

    /// Runs a script and returns what it returns.
    @discardableResult
    func run(_ script: String, _ arguments: Value...) async throws -> Value {
        try await command("POST", "/execute/sync", ["script": .string(script), "args": .list(arguments)])
    }

    /// Sends a command of the browser's own protocol.
    @discardableResult
    func develop(_ name: String, _ parameters: Value = [:]) async throws -> Value {
        try await command("POST", "/goog/cdp/execute", ["cmd": .string(name), "params": parameters])
    }

    /// Types keys into the element that has the focus.
    func type(_ keys: String) async throws {
        let actions = keys.flatMap { key -> [Value] in
            ["keyDown", "keyUp"].map { ["type": .string($0), "value": .string(String(key))] }
        }
        let keyboard: Value = ["type": "key", "id": "keyboard", "actions": .list(actions)]
        _ = try await command("POST", "/actions", ["actions": [keyboard]])
    }

    static let tab = "\u{E004}"
    static let enter = "\u{E007}"

    /// The errors that the browser has reported since the last call.
    func errors() async throws -> [String] {
        try await command("POST", "/se/log", ["type": "browser"]).list?
            .filter { $0["level"] == "SEVERE" }.compactMap { $0["message"]?.string } ?? []
    }

    /// Sets the size of the page, and whether it uses dark colours.
    func show(width: Int, height: Int, isDark: Bool) async throws {
        let size: Value = ["width": .int(width), "height": .int(height), "deviceScaleFactor": 1, "mobile": false]
        try await develop("Emulation.setDeviceMetricsOverride", size)
        let scheme: Value = ["name": "prefers-color-scheme", "value": isDark ? "dark" : "light"]
        try await develop("Emulation.setEmulatedMedia", ["features": [scheme]])
    }

    /// Takes a picture of the whole page, as PNG.
    func picture(isWhole: Bool = true) async throws -> Data {
        let answer = try await develop(
            "Page.captureScreenshot", ["format": "png", "captureBeyondViewport": .bool(isWhole)])
        return Data(base64Encoded: answer["data"]?.string ?? "") ?? Data()
    }
}
