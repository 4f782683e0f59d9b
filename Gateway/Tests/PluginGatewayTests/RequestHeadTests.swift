import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import PluginGateway

@Suite struct RequestHeadTests {
    @Test func `it is known whether the requests of a connection have arrived to their ends`() throws {
        let departures = Departures(writeTimeout: .seconds(1), bodyLimit: 100)
        let channel = EmbeddedChannel(handler: RequestHeadHandler(departures, bodyLimit: 100))
        let connected = departures.come(channel)
        func areWhole(after part: HTTPServerRequestPart) throws -> Bool {
            try channel.writeInbound(part)
            return connected.hasWholeRequests
        }
        let head = HTTPServerRequestPart.head(HTTPRequestHead(version: .http1_1, method: .POST, uri: "/"))
        #expect(!connected.hasWholeRequests)
        for _ in 1...2 {
            #expect(try !areWhole(after: head))
            #expect(try !areWhole(after: .body(ByteBuffer(string: "{}"))))
            #expect(try areWhole(after: .end(nil)))
        }
        _ = try channel.finish()
    }
}
