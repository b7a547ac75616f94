import { type Command, Option } from 'commander'
import { type ApiKey, createApiKey } from '../../http/api-keys.ts'
import { type Role, roles } from '../../http/roles.ts'
import { CliError } from '../cli-error.ts'
import { newCommand, onCall } from '../command.ts'
import { commaList } from '../option-values.ts'

export function keysCommand(): Command {
  const group = newCommand('keys', {
    summary: 'make API keys',
    examples: ['sluice keys create --role operator'],
  })
  group.addCommand(create())
  return group
}

interface CreateOptions {
  readonly role: Role
  readonly id?: string
  readonly tenant?: string
  readonly queues?: readonly string[]
}

function create(): Command {
  const command = newCommand('create', {
    summary: 'a new key, shown this once, and the entry for "keys" of the config file',
    details:
      'admin: everything. operator: all but the audit log. viewer: looks. tenant: sees and submits only its own. ' +
      'The entry has only a digest of the key, from which the key cannot be had.',
    examples: ['sluice keys create --role operator --id ops', 'sluice keys create --role tenant --tenant acme --json'],
  })
    .addOption(new Option('--role <role>', 'what it may do').choices(roles).makeOptionMandatory())
    .option('--id <id>', 'what the audit log calls it (default: role and tenant)')
    .option('-t, --tenant <name>', 'the tenant of a key of role tenant')
    .option('--queues <names>', 'only these queues', commaList)
  return onCall<CreateOptions>(command, async ({ output, options }) => {
    const { role, tenant, queues } = options
    if ((role === 'tenant') !== (tenant !== undefined)) {
      throw new CliError('usage', 'the role tenant needs --tenant, and no other role has one')
    }
    const { key, hash } = createApiKey()
    const id = options.id ?? [role, tenant].filter((part) => part !== undefined).join('-')
    const entry: ApiKey = { id, hash, role, ...(tenant && { tenant }), ...(queues && { queues }) }
    output.data({ key, entry }, () => `${key}\n\nkeys: [${JSON.stringify(entry)}]`)
    output.talk(
      'The key is shown this once. The entry goes into sluice.config; the key to whoever uses it (SLUICE_KEY).',
    )
    return 'ok'
  })
}
