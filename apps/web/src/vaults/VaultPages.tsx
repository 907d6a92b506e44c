import '../sign/sign.css'
import './vaults.css'
import type { Route } from '../router.tsx'
import { ApprovePage } from './ApprovePage.tsx'
import { NewVaultPage } from './NewVaultPage.tsx'
import { PasskeyPage } from './PasskeyPage.tsx'
import { VaultPage } from './VaultPage.tsx'
import { VaultsPage } from './VaultsPage.tsx'

export type VaultRoute = Extract<Route, { page: 'vaults' | 'new_vault' | 'vault' | 'approve' | 'passkey' }>

/** The vault pages share most of their code, so they are one script. */
export function VaultPages({ route }: { route: VaultRoute }) {
  switch (route.page) {
    case 'vaults':
      return <VaultsPage />
    case 'new_vault':
      return <NewVaultPage />
    case 'vault':
      return <VaultPage address={route.address} />
    case 'approve':
      return <ApprovePage />
    case 'passkey':
      return <PasskeyPage />
  }
}
