import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import PluginABI

/// The offers of the other host at one moment, for the targets of a mount.
struct Offers: Sendable {
    /// The targets that are offered, or why they cannot be mounted, by their names.
    let targets: [String: Result<OfferedTarget, PluginError>]
    /// The header `ETag` of the answer.
    let tag: String?

    /// - Throws: `invalidManifest` if the description is not valid.
    private init(
        _ description: Value, _ names: [String], _ mount: Mount, _ tag: String?
    ) throws(PluginError) {
        guard let modules = description["modules"]?.list else {
            throw PluginError(.invalidManifest, "The description of its modules has no list “modules”.")
        }
        var targets: [String: Result<OfferedTarget, PluginError>] = [:]
        let wanted = Set(names)
        for module in modules {
            for target in module["targets"]?.list ?? [] {
                guard let name = target["name"]?.string, wanted.contains(name), targets[name] == nil else { continue }
                do throws(PluginError) {
                    targets[name] = .success(
                        try OfferedTarget(target, of: module, mount.configuration, from: mount.url))
                } catch {
                    targets[name] = .failure(error)
                }
            }
        }
        (self.targets, self.tag) = (targets, tag)
    }

    /// Whether both offer the same.
    func isSame(as other: Offers) -> Bool {
        guard targets.count == other.targets.count else { return false }
        return targets.allSatisfy { name, target in
            switch (target, other.targets[name]) {
            case (.success(let left), .success(let right)?): left.manifest == right.manifest
            case (.failure(let left), .failure(let right)?): left == right
            default: false
            }
        }
    }

    enum Answer: Sendable {
        case unchanged
        case offers(Offers)
        case failed(String)
    }

    /// How long the other host may take to answer a request for its offers.
    private static let timeout = TimeAmount.seconds(10)

    /// Requests the offers from the other host.
    ///
    /// - Parameter known: The tag of the last answer; `nil` to get the offers even if they have not changed.
    static func fetch(_ mount: Mount, _ names: [String], known: String?) async -> Answer {
        guard let clients = mount.clients else { return .failed("The mount has ended.") }
        let reader = AnswerReader(limit: mount.configuration.descriptionLimit)
        do {
            var headers = try mount.headers()
            headers.add(name: "Accept", value: "application/json")
            if let known { headers.add(name: "If-None-Match", value: known) }
            // Over a new connection, so that a balancer can route it to a host that serves.
            let request = try HTTPClient.Request(url: mount.url + "/modules.json", headers: headers)
            let task = clients.fresh.execute(request: request, delegate: reader, deadline: .now() + timeout)
            try await withTaskCancellationHandler {
                try await task.get()
            } onCancel: {
                task.cancel()
            }
        } catch let error as PluginError {
            return .failed(error.message)
        } catch {
            let answer = reader.answer
            guard answer.isTooLarge else { return .failed(CallFailure(error, answer, mount.url).error.message) }
            if answer.kind == .json {
                return .failed(
                    "\(mount.url) describes its modules in more than \(mount.configuration.descriptionLimit) bytes.")
            }
        }
        let answer = reader.answer
        if answer.status == 304, known != nil { return .unchanged }
        guard answer.kind == .json, let value = try? Value(foreign: answer.body) else {
            return .failed(CallFailure(answer, mount).error.message)
        }
        do throws(PluginError) {
            let tag = answer.tag.flatMap { $0.utf8.count <= 256 ? $0 : nil }
            return .offers(try Offers(value, names, mount, tag))
        } catch {
            return .failed("\(mount.url): \(error.message)")
        }
    }
}
