import { Inject, Injectable, Scope } from '@nestjs/common'
import { REQUEST } from '@nestjs/core'
import type { Job } from 'sluice'

@Injectable({ scope: Scope.REQUEST })
export class TenantSettings {
  readonly sender: string

  constructor(@Inject(REQUEST) job: Job) {
    this.sender = `no-reply@${job.tenant}.example.org`
  }
}
