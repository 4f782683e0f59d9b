import ArgumentParser
import Foundation
import PluginABI
import PluginGatewayFleet
import PluginHost

extension FleetCommand {
    /// `pluginhost-gateway fleet rollout`.
    struct Rollout: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Rolls out a version of a module to all hosts, one after the other.",
            discussion: """
                The file must be in the store of each host. Each host checks its digest, leaves the balancer, replaces the \
                module, returns, and observes it. If a limit is passed, or a host cannot replace the module, all hosts roll \
                back. The command waits for the end; the rollout does not depend on it.
                """)
        @OptionGroup var place: Place

        @Argument(help: "The name of the module.")
        var module: String

        @Argument(help: "The version that the file declares.")
        var version: String

        @Option(help: "The name of the file in the store. (default: MODULE-VERSION.so)")
        var file: String?

        @Option(help: "The folder of the store on this machine. (default: that of --config)")
        var store: String?

        @Option(help: "The SHA-256 of the file, if it cannot be read on this machine.")
        var digest: String?

        @Option(help: "How long a host is out of the balancer before it replaces the module, in seconds.")
        var drain = 2.0

        @Option(help: "How long a host observes the new version, in seconds.")
        var soak = 10.0

        @Option(help: "How many calls a host must have observed before it judges.")
        var minimumCalls = 20

        @Option(help: "The largest share of calls that may fail, 0 to 1.")
        var maximumErrorRate = 0.05

        @Option(help: "The longest duration that 99 of 100 calls may take, in milliseconds.")
        var maximumLatency: Double?

        @Option(help: "How many times as long 99 of 100 calls may take as with the previous version, on the same host.")
        var maximumLatencyRatio: Double?

        @Flag(inversion: .prefixedNo, help: "Wait for the end.")
        var wait = true

        func validate() throws {
            guard (0...86_400).contains(drain), (0...86_400).contains(soak) else {
                throw ValidationError("--drain and --soak must be 0 to 86400 seconds.")
            }
            guard (1...1_000_000_000).contains(minimumCalls), (0...1).contains(maximumErrorRate),
                maximumLatency.map((0.001...86_400_000).contains) ?? true,
                maximumLatencyRatio.map((0.001...1_000_000).contains) ?? true
            else {
                throw ValidationError(
                    "--minimum-calls must be 1 or more, --maximum-error-rate 0 to 1, --maximum-latency and "
                        + "--maximum-latency-ratio more than 0.")
            }
        }

        func run() async throws {
            var limits = RolloutRecord.Limits()
            (limits.minimumCalls, limits.maximumErrorRate) = (minimumCalls, maximumErrorRate)
            (limits.maximumLatency, limits.maximumLatencyRatio) = (maximumLatency, maximumLatencyRatio)
            let configured = try place.fleet().store
            let release = try release(configured)
            try await place.with { control, _ in
                let record = try await control.rollOut(
                    module, release, drain: drain, soak: soak, limits: limits, store: store ?? configured)
                print("The rollout of \(record.shown) begins.")
                guard wait else { return }
                let end = try await Self.follow(record, control)
                switch end.state {
                case .done: return
                case .rolledBack:
                    throw FleetCommand.failure("It was rolled back: \(end.reason ?? "no reason is known").", 2)
                default: throw FleetCommand.failure("It failed: \(end.reason ?? "no reason is known").", 1)
                }
            }
        }

        /// Returns the release to roll out: from the file in the store if it exists, otherwise from the options.
        private func release(_ configured: String?) throws -> ModuleRelease {
            let name = file ?? "\(module)-\(version).so"
            if let digest {
                let release = ModuleRelease(version: version, digest: digest, file: name)
                if let problem = FleetControl.problem(module, release) { throw ValidationError(problem) }
                return release
            }
            guard let store = store ?? configured else {
                throw ValidationError("Give --store FOLDER, --config with “store”, or --digest.")
            }
            // The name is checked before it becomes a part of a path.
            let zeros = String(repeating: "0", count: 64)
            if let problem = FleetControl.problem(module, ModuleRelease(version: version, digest: zeros, file: name)) {
                throw ValidationError(problem)
            }
            let path = "\(store)/\(name)"
            let digest: String
            do { digest = try FleetControl.digest(ofFile: path) } catch { throw ValidationError("\(error)") }
            let manifest: Value?
            do throws(PluginError) {
                manifest = try PluginHost.inspect(file: path, trustsEveryone: true).json["manifest"]
            } catch { throw ValidationError(error.message) }
            let (found, of) = (manifest?["version"]?.string ?? "", manifest?["name"]?.string ?? "")
            guard of == module, found == version else {
                throw ValidationError("The file \(path) is \(of) \(found), not \(module) \(version).")
            }
            return ModuleRelease(version: version, digest: digest, file: name)
        }

        /// Prints the progress of the rollout until it is over.
        static func follow(_ record: RolloutRecord, _ control: FleetControl) async throws -> RolloutRecord {
            var (shown, isLost, missing) = (record, false, [String]())
            while true {
                do throws(EtcdError) {
                    let snapshot = try await control.snapshot()
                    isLost = false
                    for host in snapshot.missingHosts where !missing.contains(host) {
                        print(
                            "\(host): away. The rollout waits for it; “fleet resume --without \(host)” ends the wait.")
                    }
                    missing = snapshot.missingHosts
                    guard let now = snapshot.rollout, now.id == record.id else { break }
                    for (host, step) in now.steps.sorted(by: { $0.key < $1.key }) where shown.steps[host] != step {
                        print("\(host): \(step.shown)")
                    }
                    if now.state != shown.state {
                        print("\(now.state.shown)\(now.reason.map { ": \($0)" } ?? "")")
                    }
                    shown = now
                    if !now.isActive { return now }
                } catch {
                    if !isLost {
                        let text = "etcd does not answer; the command waits. \(error)\n"
                        FileHandle.standardError.write(Data(text.utf8))
                    }
                    isLost = true
                }
                fflush(nil)
                try await Task.sleep(for: .milliseconds(250))
            }
            throw FleetCommand.failure("Another rollout has begun, or the record was deleted; this one is over.", 1)
        }
    }
}

extension RolloutRecord.Step {
    /// The state of a host's step, with what the host has observed.
    var shown: String {
        let observed = observed.map { observed in
            let latency = observed.latency.map { ", 99 of 100 within \(($0 * 10).rounded() / 10) ms" } ?? ""
            return " (\(observed.calls) calls, \(observed.errors) failed\(latency))"
        }
        return "\(state.shown)\(observed ?? "")\(reason.map { ": \($0)" } ?? "")"
    }
}
