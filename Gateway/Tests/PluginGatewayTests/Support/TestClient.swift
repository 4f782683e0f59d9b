import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import PluginABI
import PluginHost

/// A client of a server on this machine.
struct TestClient: Sendable {
    let port: Int

    struct Answer {
        let status: Int
        let headers: [(String, String)]
        let body: [UInt8]

        var text: String { String(decoding: body, as: UTF8.self) }
        var json: Value { get throws { try Value(json: text) } }
        var code: String? { (try? json)?["code"]?.string }

        func header(_ name: String) -> String? { headers.first { $0.0.lowercased() == name.lowercased() }?.1 }
    }

    func request(_ method: String, _ path: String, _ headers: [(String, String)] = []) -> HTTPClientRequest {
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)\(path)")
        request.method = .RAW(value: method)
        request.headers.add(contentsOf: HTTPHeaders(headers))
        return request
    }

    func ask(
        _ method: String, _ path: String, headers: [(String, String)] = [], body: [UInt8]? = nil
    ) async throws -> Answer {
        var request = request(method, path, headers)
        if let body { request.body = .bytes(ByteBuffer(bytes: body)) }
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(120))
        let content = try await response.body.collect(upTo: 64 << 20)
        return Answer(
            status: Int(response.status.code), headers: response.headers.map { ($0.name, $0.value) },
            body: Array(content.readableBytesView))
    }
}
