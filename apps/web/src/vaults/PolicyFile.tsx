import { toPolicyFile, type Vault } from '@countersign/sdk/vaults'
import { useMemo } from 'react'
import { DownloadLink } from '../report/DownloadLink.tsx'

/** The rules as a file, to the byte: without them nobody can make the key again. */
export function PolicyFile({ vault }: { vault: Vault }) {
  const { name, bytes } = useMemo(() => toPolicyFile(vault), [vault])
  return (
    <div className="vault-section">
      <p>
        Keep the rules as a file. The key is made from these very bytes: if the service and IPFS lost them, only the
        file could bring the vault back. It holds no secret.
      </p>
      <div className="actions">
        <DownloadLink bytes={bytes} name={name}>
          Save the rules
        </DownloadLink>
      </div>
    </div>
  )
}
