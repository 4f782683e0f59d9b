import Foundation
import Testing

@testable import PluginGatewayFleet

/// `pluginhost-gateway fleet`, and the setting `fleet` of `serve`.
@Suite(.enabled(if: hasEtcd, "The tests of fleets need etcd."))
struct CommandTests {
    private func fleet(_ arguments: String...) async throws -> (output: String, status: Int32) {
        try await Program.run(["\(buildFolder)/pluginhost-gateway", "fleet"] + arguments)
    }

    @Test func `the commands show and change a fleet`() async throws {
        let fleet = try await TestFleet()
        let place = ["--endpoints", fleet.etcd.url, "--prefix", "test"]
        let (url, store) = (place[1], "\(fleet.folder)/store")
        let nobody = try await self.fleet("status", place[0], url, place[2], "test")
        #expect(nobody.status == 0 && nobody.output.contains("No host is known."))
        let member = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 1 })
        let rollout = try await self.fleet(
            "rollout", "Good", "1.1.0", "--store", store, "--drain", "0", "--soak", "0", place[0], url, place[2], "test"
        )
        #expect(rollout.status == 0, "\(rollout.output)")
        #expect(rollout.output.contains("The rollout of Good 1.1.0 ("))
        #expect(rollout.output.contains("host1: done (0 calls, 0 failed)\ndone\n"))
        #expect(member.version == "1.1.0")
        let status = try await self.fleet("status", place[0], url, place[2], "test").output
        #expect(status.contains("host1  host1:80  ready  Good    1.1.0"), "\(status)")
        #expect(status.contains("Good     1.1.0") && status.contains("Good-1.1.0.so"))
        let json = try await self.fleet("status", "--json", place[0], url, place[2], "test").output
        #expect(json.hasPrefix("{") && json.contains("\"state\":\"done\""), "\(json)")
        let back = try await self.fleet("back", "--reason", "no good", place[0], url, place[2], "test")
        #expect(back.status == 0 && back.output.contains("rolled back: no good"), "\(back.output)")
        #expect(member.version == "1.0.0")
        let pause = try await self.fleet("pause", place[0], url, place[2], "test")
        #expect(pause.status == 75 && pause.output.contains("is rolled back, not running."), "\(pause.output)")
        try await member.end()
    }

    @Test func `a rollout that waits for a host goes on without it`() async throws {
        let fleet = try await TestFleet()
        let place = ["--endpoints", fleet.etcd.url, "--prefix", "test"]
        let member = try await fleet.start("host1")
        let lease = try await fleet.pretend("host0")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 2 })
        let program = "\(buildFolder)/pluginhost-gateway"
        let begun = try await Program.run(
            [
                program, "fleet", "rollout", "Good", "1.1.0", "--store", "\(fleet.folder)/store", "--drain", "0",
                "--soak",
            ]
                + ["0", "--no-wait"] + place)
        #expect(begun.status == 0, "\(begun.output)")
        try await fleet.client.revoke(lease)
        #expect(await becomesTrue { try await fleet.control.snapshot().rollout?.steps["host1"]?.state == .done })
        let status = try await Program.run([program, "fleet", "status"] + place).output
        #expect(status.contains("host0: away; the rollout waits for it. (fleet resume --without host0)"), "\(status)")
        for (host, text) in [("host1", "is known, and does its step"), ("hos\u{1b}t", "does not wait for a host")] {
            let refused = try await Program.run([program, "fleet", "resume", "--without", host] + place)
            #expect(refused.status == 75 && refused.output.contains(text), "\(refused.output)")
            #expect(!refused.output.contains("\u{1b}"))
        }
        #expect(try await fleet.control.snapshot().rollout?.state == .running)
        let resumed = try await Program.run([program, "fleet", "resume", "--without", "host0"] + place)
        #expect(resumed.status == 0, "\(resumed.output)")
        #expect(resumed.output.hasPrefix("The rollout of Good 1.1.0 (") && resumed.output.hasSuffix("continues.\n"))
        #expect(try await fleet.end()?.state == .done)
        let again = try await Program.run([program, "fleet", "resume", "--without", "host0"] + place)
        #expect(again.status == 75 && again.output.contains("is done, not running"), "\(again.output)")
        try await member.end()
    }

    @Test func `what cannot be rolled out is refused before anything is written`() async throws {
        let folder = try makeFolder()
        try copyFile(TestMember.file("1.0.0"), to: "\(folder)/Good-1.0.0.so")
        try copyFile(TestMember.file("1.0.0"), to: "\(folder)/Good-2.0.0.so")
        for (arguments, message) in [
            (["Good", "3.0.0", "--store", folder], "The file \(folder)/Good-3.0.0.so does not exist."),
            (["Good", "2.0.0", "--store", folder], "is Good 1.0.0, not Good 2.0.0."),
            (["Good", "1.0.0"], "Give --store FOLDER"),
            (["Good", "1.0.0", "--store", folder, "--file", "../x.so"], "is not the name of a file in the store"),
            (["../x", "1.0.0", "--store", folder], "is not the name of a module"),
            (["Good", "1.0.0", "--digest", "12"], "is not a SHA-256"),
            (["Good", "1.0.0", "--store", folder, "--soak=-1"], "--soak must be"),
            (["Good", "1.0.0", "--store", folder, "--maximum-error-rate", "2"], "--maximum-error-rate"),
            (["Good", "1.0.0", "--store", folder, "--endpoints", "10.0.0.1:2379"], "is not a URL such as"),
        ] {
            let answer = try await Program.run(["\(buildFolder)/pluginhost-gateway", "fleet", "rollout"] + arguments)
            #expect(answer.status == 64, "\(arguments) \(answer.output)")
            #expect(answer.output.contains(message), "\(answer.output)")
        }
        let gone = "http://127.0.0.1:\(try freePort())"
        let answer = try await fleet("rollout", "Good", "1.0.0", "--store", folder, "--endpoints", gone)
        #expect(answer.status == 1 && answer.output.contains("does not answer"), "\(answer.output)")
    }

    @Test(arguments: [
        ("{}", "2:2: “fleet” must have “endpoints”"), ("{\"endpoints\": [\"etcd\"]}", "“etcd” is not a URL such as"),
        ("{\"endpoints\": [\"http://a\"], \"nam\": \"b\"}", "Did you mean “name”?"),
        ("{\"endpoints\": [\"http://a\"], \"name\": \"a/b\"}", "“name” must have 1 to 64 letters"),
        ("{\"endpoints\": [\"http://a\"], \"user\": \"b\"}", "Give both “user” and “passwordFile”"),
        ("{\"endpoints\": [\"http://a\"], \"lease\": 0}", "“lease” must be a whole number from 1 to 3600"),
        ("{\"endpoints\": [\"http://a\"], \"prefix\": \"a//b\"}", "“prefix” must have"),
        ("{\"endpoints\": [\"https://a\"], \"certificateAuthority\": \"absent.pem\"}", "absent.pem cannot be read"),
    ])
    func `mistakes in the setting are named with their places`(setting: String, message: String) async throws {
        let folder = try makeFolder()
        try "{\"plugins\": [\".\"], \"listen\": \"127.0.0.1:0\",\n \"fleet\": \(setting)}"
            .write(toFile: "\(folder)/gateway.json", atomically: true, encoding: .utf8)
        let answer = try await Program.run([
            "\(buildFolder)/pluginhost-gateway", "serve", "--config", "\(folder)/gateway.json",
        ])
        #expect(answer.status == 64 && answer.output.contains(message), "\(answer.output)")
    }

    @Test func `the idempotent actions of a gateway are listed for HAProxy`() async throws {
        let folder = try makeFolder()
        try copyFile(ShopModule.build("1.0.0"), to: "\(folder)/shop.so")
        let program = try Program(["serve", "--plugins", folder, "--listen", "127.0.0.1:0"])
        let port = try #require(await program.port())
        let url = "http://127.0.0.1:\(port)"
        #expect(await becomesTrue { try await fleet("idempotent", url).output == "/call/Shop/look\n" })
        program.send(SIGKILL)
        _ = await program.end()
        let gone = try await fleet("idempotent", url)
        #expect(gone.status == 1 && gone.output.contains("cannot be read"), "\(gone.output)")
    }
}
