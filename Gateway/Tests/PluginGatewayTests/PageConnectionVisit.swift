import Foundation
import PluginABI
import PluginGateway
import PluginHost
import Testing

// How the page behaves when its connection breaks, when it is not visible, and when it needs a token.
extension Visit {
    func survivesARestart(_ gateway: TestGateway, _ port: Int) async throws {
        try await gateway.end()
        try await becomes("!document.getElementById('banner').hidden")
        try await becomes("\(text("#banner")).includes('is lost')")
        let again = try await self.gateway(port: port)
        try copyFile(TestGateway.samples[0], to: "\(again.plugins)/new.so")
        try await becomes("document.getElementById('banner').hidden")
        try await becomes("\(state("ModuleA")) === 'active'")
        try await again.end()
    }

    func asksForAToken() async throws {
        let file = "\(folder)/tokens"
        func write(_ token: String) throws {
            try Data("\(token)\n".utf8).write(to: URL(filePath: file))
            chmod(file, 0o600)
        }
        try write(Self.token)
        let access = GatewayConfiguration.Access.tokens(try BearerTokens(file: file))
        let gateway = try await TestGateway(TestGateway.samples) { configuration, _ in configuration.access = access }
        func enter(_ token: String) async throws {
            try await becomes("document.activeElement.id === 'token'")
            try await browser.type(token + Browser.enter)
        }
        try await open(gateway.port)
        try await becomes("\(text("#login-reason")).includes('only those who have')")
        try await enter("wrong")
        try await becomes("\(text("#login-reason")).includes('does not accept')")
        try await enter(Self.token)
        try await becomes("document.getElementById('login').hidden && \(state("ModuleC")) === 'active'")
        try await becomes("\(text("#connection")) === 'Connected'")
        try write("another-token-of-today")
        try await becomes("\(text("#login-reason")).includes('expired') && !document.getElementById('login').hidden")
        try await enter("another-token-of-today")
        try await becomes("\(text("#connection")) === 'Connected' && document.getElementById('login').hidden")
        // A page that cannot change modules has no buttons for changes.
        try await choose("ModuleC")
        try await becomes("\(text("#details")).includes('This page cannot change modules')")
        try await gateway.end()
    }

    /// “Try now” does not wait for the next try, and the focus moves on to the modules.
    func triesNow(_ port: Int) async throws {
        let gateway = try await self.gateway(port: port)
        try await freezing {
            try await open(port)
            try await becomes("\(text("#connection")) === 'Connected'")
            try await browser.run("window.isFrozen = true; window.frozen = 0")
            try await gateway.end()
            try await becomes("window.frozen > 0 && !document.getElementById('banner').hidden")
            let again = try await self.gateway(port: port)
            #expect(try await browser.run("return document.getElementById('banner').hidden") == false)
            try await browser.run("window.isFrozen = false; document.querySelector('#banner button').focus()")
            try await browser.type(Browser.enter)
            try await becomes("document.getElementById('banner').hidden && \(text("#connection")) === 'Connected'")
            try await becomes("document.activeElement.id === 'modules'")
            try await again.end()
        }
    }

    /// A hidden page sends no requests and closes its connection, and catches up when it is visible again.
    func isHidden() async throws {
        let gateway = try await TestGateway([try labModule.build()])
        try await freezing {
            try await open(gateway.port)
            try await becomes("\(text("#connection")) === 'Connected'")
            func streams(_ count: Int) async throws -> Bool {
                try await gateway.get("/metrics").text.contains("gateway_event_streams \(count).0\n")
            }
            #expect(await becomesTrue { try await streams(1) })
            try await browser.run(showPage, true)
            #expect(await becomesTrue { try await streams(0) })
            try copyFile(TestGateway.samples[2], to: "\(gateway.plugins)/hidden.so")
            #expect(await becomesTrue { try await gateway.state(of: "ModuleC")?["state"] == "active" })
            #expect(try await browser.run("return \(state("ModuleC"))") == "")
            try await browser.run(showPage, false)
            #expect(await becomesTrue { try await streams(1) })
            try await becomes("\(state("ModuleC")) === 'active' && document.getElementById('banner').hidden")
            try await becomes("\(text("#event-list")).includes('added ModuleC')")
        }
        try await gateway.end()
    }

    /// Opens pages whose timers can be stopped.
    private func freezing(_ body: () async throws -> Void) async throws {
        let script = try await browser.develop(
            "Page.addScriptToEvaluateOnNewDocument", ["source": .string(frozenTimers)])
        try await body()
        try await browser.develop("Page.removeScriptToEvaluateOnNewDocument", script)
    }
}
